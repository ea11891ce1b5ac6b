"""``python -m epistemic_calibration`` is the command ``epistemic-calibration``."""

import sys

from epistemic_calibration.cli import main

if __name__ == "__main__":
    sys.exit(main())
