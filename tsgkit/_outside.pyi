# Kernels for other compiled modules: Python sees nothing here.
