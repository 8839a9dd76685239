"""``python -m tsgkit COMMAND`` is ``tsgkit COMMAND``."""

import sys

from tsgkit.cli import main

sys.exit(main())
