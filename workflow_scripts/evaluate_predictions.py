"""Score one file of predictions of a binary task, without the workflow.

The file is an .npz with `hypotheses` (n_samples, n_hypotheses) and `y_true` (n_samples,), or
a .csv with a column y_true and one column for each hypothesis; both may hold `prediction`
and `epistemic_uncertainty` where the model reports its own. With `n_positive` and `n_labels`,
several labels per input, the size of the uncertainty is scored, too.
"""

import argparse
import sys


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("predictions", help=".npz or .csv file")
    parser.add_argument("--n-bins", type=int, default=100, help="bins of the EECE (default: 100)")
    parser.add_argument("--binning", default="kmeans", help="partition of the joint predictions")
    parser.add_argument("--ece-n-bins", type=int, default=10, help="bins of the ECE (default: 10)")
    parser.add_argument(
        "--corrected-n-bins", type=int, default=50, help="bins of the corrected TECE (default: 50)"
    )
    parser.add_argument(
        "--recalibration", action="store_true", help="score a second-order recalibration as well"
    )
    parser.add_argument("--random-state", type=int, default=0, help="seed of K-means")
    parser.add_argument("--output", help="write the scores to this CSV as well")
    args = parser.parse_args()

    import pandas as pd

    from epistemic_calibration.predictions import read_predictions
    from epistemic_calibration.scoring import Scorer

    settings = {
        "n_bins": args.n_bins,
        "binning": args.binning,
        "ece_n_bins": args.ece_n_bins,
        "random_state": args.random_state,
        "corrected_n_bins": args.corrected_n_bins,
        "corrected_binning": "nested",
        "confidence_level": 0.95,
        "n_resamples": 999,
        "recalibration": args.recalibration,
    }
    try:
        table = pd.DataFrame(Scorer(read_predictions(args.predictions), settings).rows())
    except ValueError as error:
        sys.exit(f"evaluate_predictions: {error}")
    if args.output:
        table.to_csv(args.output, index=False)
    print(table[["metric", "value"]].to_string(index=False))


if __name__ == "__main__":
    main()
