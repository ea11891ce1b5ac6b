"""Delete results that do not come from the present configuration and sources.

Only needed where Snakemake has lost its own records (.snakemake); otherwise it makes such
results again by itself. Run it in the working folder; `--dry-run` only names the files.
"""

import argparse
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configfile", default="config.yaml", type=Path)
    parser.add_argument("--dry-run", action="store_true", help="name the files, delete nothing")
    args = parser.parse_args()

    import yaml

    from epistemic_calibration.config import resolve_config
    from epistemic_calibration.plan import Plan
    from epistemic_calibration.stale import stale_files

    config = yaml.safe_load(args.configfile.read_text(encoding="utf-8"))
    for path in stale_files(Plan(resolve_config(config))):
        print(path)
        if not args.dry_run:
            path.unlink()


if __name__ == "__main__":
    main()
