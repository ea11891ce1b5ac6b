"""Delete results that do not come from the present configuration and sources.

Needed where Snakemake has no records of its own (.snakemake) of the results, as when they were
copied here; otherwise it makes such results again by itself. What is left comes from this
configuration and these sources, whatever its time, and is set to one time: Snakemake would
make again what is older than its sources. Run it in the working folder; `--dry-run` only
names the files.
"""

import argparse
import os
import time
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--configfile", default=[Path("config.yaml")], nargs="+", type=Path, help="as of snakemake"
    )
    parser.add_argument(
        "--config", default=[], nargs="+", metavar="KEY=VALUE", help="as of snakemake"
    )
    parser.add_argument("--dry-run", action="store_true", help="name the files, delete nothing")
    args = parser.parse_args()

    import yaml
    from snakemake.cli import parse_config
    from snakemake.utils import update_config

    from epistemic_calibration.config import (
        check_duplicate_keys,
        resolve_config,
        retype_overrides,
    )
    from epistemic_calibration.plan import Plan
    from epistemic_calibration.stale import stale_files

    config = {}
    # Snakemake reads the project's own file first.
    for path in dict.fromkeys([Path("config.yaml"), *args.configfile]):
        check_duplicate_keys(path)
        update_config(config, yaml.safe_load(path.read_text(encoding="utf-8")))
    overrides = parse_config(args.config)
    update_config(config, overrides)
    for path in stale_files(Plan(resolve_config(retype_overrides(config, overrides)))):
        print(path)
        if not args.dry_run:
            path.unlink()
    if not args.dry_run:
        now = time.time_ns()
        for folder, _, names in os.walk("results", followlinks=True):
            for path in (Path(folder, name) for name in names):
                if path.is_file() and not path.is_symlink():
                    os.utime(path, ns=(now, now))


if __name__ == "__main__":
    main()
