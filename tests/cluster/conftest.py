"""A real SLURM on this machine: one controller and two nodes on the loopback interface."""

import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")
NODES = ("node1", "node2")

#: All daemons are root's, listen on free ports and keep their files in one folder. The nodes
#: claim more cores and memory than the machine may have, and a GPU: what is tested is the queue.
#: Memory is polled, because control groups are not to be had in a container.
SLURM_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
KillWait=2
MinJobAge=3600
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=DEFAULT CPUs=2 RealMemory=32000 State=UNKNOWN
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node_ports[0]}
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={node_ports[1]} Gres=gpu:1
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@pytest.fixture(scope="session")
def slurm():
    """Start SLURM, and return the environment in which its commands reach it."""
    if os.geteuid() != 0:
        pytest.skip("SLURM's daemons are started as root")
    path = os.environ["PATH"] + os.pathsep + "/usr/sbin"
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if missing:
        pytest.skip(f"packages munge and slurm-wlm are not installed: no {', '.join(missing)}")
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        pytest.skip("snakemake-executor-plugin-slurm is not installed")
    # Not pytest's own temporary folder: Munge wants one that every user can enter.
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        yield from running_slurm(Path(folder), path)


def running_slurm(folder, path):
    """Start the daemons in a folder, yield their environment, stop the daemons."""
    folder.chmod(0o755)
    for name in ("state", *(f"spool-{node}" for node in NODES), "bin"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(mode=0o400)
    key.write_bytes(secrets.token_bytes(128))
    controller_port, *node_ports = free_ports(1 + len(NODES))
    conf = folder / "slurm.conf"
    conf.write_text(
        SLURM_CONF.format(
            host=socket.gethostname().split(".")[0],
            folder=folder,
            controller_port=controller_port,
            node_ports=node_ports,
        )
    )
    (folder / "gres.conf").write_text("NodeName=node2 Name=gpu File=/dev/null\n")
    # Snakemake's jobs drop SLURM_CONF before they call srun, which would then look in /etc.
    srun = folder / "bin" / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {shutil.which("srun", path=path)} "$@"\n')
    srun.chmod(0o755)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SLURM_", "SBATCH_", "SRUN_"))
    }
    environment.update(PATH=f"{srun.parent}{os.pathsep}{path}", SLURM_CONF=str(conf))

    daemons = {}

    def start(name, *command):
        with (folder / f"{name}.out.log").open("a") as out:
            daemons[name] = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def wait_for(condition, what):
        deadline = time.monotonic() + 600
        while not condition():
            dead = [name for name, daemon in daemons.items() if daemon.poll() is not None]
            if dead or time.monotonic() > deadline:
                logs = [f"{log.name}:\n{log.read_text()}" for log in folder.glob("*.log")]
                pytest.fail("\n".join([f"{what} did not get ready; ended: {dead}", *logs]))
            time.sleep(0.1)

    def nodes_are_idle():
        command = ["sinfo", "--noheader", "--Node", "--format=%T"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        return done.stdout.split() == ["idle"] * len(NODES)

    try:
        start(
            "munged",
            "munged",
            "--foreground",
            f"--key-file={key}",
            f"--socket={folder}/munge.socket",
            f"--pid-file={folder}/munged.pid",
            f"--log-file={folder}/munged.log",
            f"--seed-file={folder}/munged.seed",
        )
        wait_for((folder / "munge.socket").exists, "munged")
        start("slurmctld", "slurmctld", "-D", "-f", str(conf))
        for node in NODES:
            start(node, "slurmd", "-D", "-f", str(conf), "-N", node)
        wait_for(nodes_are_idle, "SLURM")
        yield environment
    finally:
        if len(daemons) == 2 + len(NODES):
            command = ["scancel", "--user=root"]
            subprocess.run(command, env=environment, capture_output=True, timeout=300)
        for daemon in reversed(daemons.values()):
            daemon.terminate()
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
