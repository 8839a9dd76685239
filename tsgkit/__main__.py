"""``python -m tsgkit COMMAND`` is ``tsgkit COMMAND``."""

import sys

from tsgkit._cli import main

sys.exit(main())
