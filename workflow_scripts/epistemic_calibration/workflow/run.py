"""Run a job: ``python -m epistemic_calibration.workflow.run SCRIPT --spec FILE --INPUT PATH …``."""

import sys
from pathlib import Path

from epistemic_calibration.workflow.stage import load_stage

if __name__ == "__main__":
    load_stage(Path(sys.argv[1])).run(sys.argv[2:])
