"""Engine v1: one vehicle-routing job with OR-Tools, from environment variables to a file of routes.

=================  =========================================================================
JOB_ID             names the result file
INSTANCE           an instance's name, `X-n101-k25`
SECONDS            how long to search
INSTANCES_FOLDER   where the `.vrp` files are
RESULTS_FOLDER     where to write `JOB_ID.json`
=================  =========================================================================

Ends with exit code 0 and a result, or with a traceback and exit code 1. Trying again is not its business: that
stands in the state machine.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from instance import Instance, read_instance
from ortools.constraint_solver import pywrapcp, routing_enums_pb2


def solve(instance: Instance, seconds: int) -> tuple[int, list[list[int]]]:
    """Search for `seconds`; answer the cost and the routes, customers numbered from 1 as in `.sol` files."""
    size = len(instance.demands)
    vehicles = -(-sum(instance.demands) // instance.capacity) + 4
    manager = pywrapcp.RoutingIndexManager(size, vehicles, 0)
    routing = pywrapcp.RoutingModel(manager)
    arc_cost = routing.RegisterTransitMatrix(instance.distances)
    routing.SetArcCostEvaluatorOfAllVehicles(arc_cost)
    load = routing.RegisterUnaryTransitVector(list(instance.demands))
    routing.AddDimension(load, 0, instance.capacity, True, "load")

    best: int | None = None

    def report() -> None:
        nonlocal best
        cost = routing.CostVar().Value()
        if best is None or cost < best:
            best = cost
            print(f"found {cost}", flush=True)

    routing.AddAtSolutionCallback(report)
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.SAVINGS
    parameters.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    parameters.time_limit.FromSeconds(seconds)
    found = routing.SolveWithParameters(parameters)
    if not found:
        sys.exit(f"{instance.name}: no feasible routes within {seconds} s")
    return found.ObjectiveValue(), [route for v in range(vehicles) if (route := _route(manager, routing, found, v))]


def _route(manager: Any, routing: Any, found: Any, vehicle: int) -> list[int]:
    """Answer the customers that one vehicle visits, in order."""
    here = found.Value(routing.NextVar(routing.Start(vehicle)))
    route = []
    while not routing.IsEnd(here):
        route.append(manager.IndexToNode(here))
        here = found.Value(routing.NextVar(here))
    return route


def main() -> None:
    """Read the job from the environment, solve it, write the result."""
    job, seconds = os.environ["JOB_ID"], int(os.environ["SECONDS"])
    print(f"job {job}: {os.environ['INSTANCE']} for {seconds} s, OR-Tools, pid {os.getpid()}", flush=True)
    instance = read_instance(Path(os.environ["INSTANCES_FOLDER"]), os.environ["INSTANCE"])
    cost, routes = solve(instance, seconds)
    result = {
        "jobId": job,
        "instance": instance.name,
        "engine": "v1",
        "pid": os.getpid(),
        "cost": cost,
        "routes": routes,
    }
    target = Path(os.environ["RESULTS_FOLDER"]) / f"{job}.json"
    draft = target.with_suffix(f".{os.getpid()}.part")
    draft.write_text(json.dumps(result))
    draft.replace(target)  # whole or not at all, also when two attempts overlap
    print(f"done: cost {cost}, {len(routes)} routes, written to {target.name}", flush=True)


if __name__ == "__main__":
    main()
