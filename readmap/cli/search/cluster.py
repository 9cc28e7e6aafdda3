"""readmap search --dask: the same search by the workers of a Dask cluster."""

from __future__ import annotations

import contextlib

from readmap.cli.common.report import Report, ReportOptions, Session
from readmap.cli.search.command import ReportMonitor
from readmap.cli.search.options import ClusterOptions
from readmap.dask.cluster import connected
from readmap.dask.distributed_search import DistributedSearch
from readmap.run.config import SearchConfig


def run_on_cluster(session: Session, config: SearchConfig, options: ReportOptions, cluster: ClusterOptions) -> None:
    """Run a search on a cluster, write its JSON report and print its summary."""
    address, search = cluster.dask or "", DistributedSearch.of(config, {"json": options.json})
    with Report(session, options) as report:
        with contextlib.ExitStack() as opened:
            client = opened.enter_context(connected(address, config.device, config.gpus, config.worker_threads))
            report.say(f"the cluster's dashboard is {client.dashboard_link}")
            monitor = ReportMonitor(report, opened.enter_context(report.progress()))
            finished = opened.enter_context(search.run(client, monitor, cluster.tasks, address))
            report.finish(finished.summary.as_json(), finished.outputs)
        for line in [*finished.summary.describe(), report.cost()]:
            report.say(line)
