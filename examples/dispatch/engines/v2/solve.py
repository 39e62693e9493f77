"""Engine v2: one vehicle-routing job with PyVRP, from environment variables to a file of routes.

The same contract as engine v1: JOB_ID, INSTANCE, SECONDS, INSTANCES_FOLDER and RESULTS_FOLDER in; `JOB_ID.json` and
exit code 0 out, or a traceback and exit code 1. Its own libraries in its own environment.
"""

import json
import os
import sys
from pathlib import Path

from instance import Instance, read_instance
from pyvrp import Model
from pyvrp.stop import MaxRuntime


def solve(instance: Instance, seconds: int) -> tuple[int, list[list[int]]]:
    """Search for `seconds`; answer the cost and the routes, customers numbered from 1 as in `.sol` files."""
    model = Model()
    places = [model.add_location(x, y) for x, y in instance.places]
    depot = model.add_depot(places[0])
    for place, demand in zip(places[1:], instance.demands[1:], strict=True):
        model.add_client(place, delivery=demand)
    vehicles = -(-sum(instance.demands) // instance.capacity) + 4
    model.add_vehicle_type(vehicles, capacity=instance.capacity, start_depot=depot, end_depot=depot)
    for a, row in zip(places, instance.distances, strict=True):
        for b, distance in zip(places, row, strict=True):
            model.add_edge(a, b, distance=distance)
    result = model.solve(MaxRuntime(seconds), seed=42, display=False)
    if not result.is_feasible():
        sys.exit(f"{instance.name}: no feasible routes within {seconds} s")
    print(f"{result.num_iterations} iterations", flush=True)
    routes = [[stop.idx + 1 for stop in route if stop.is_client()] for route in result.best.routes()]
    return round(result.cost()), routes


def main() -> None:
    """Read the job from the environment, solve it, write the result."""
    job, seconds = os.environ["JOB_ID"], int(os.environ["SECONDS"])
    print(f"job {job}: {os.environ['INSTANCE']} for {seconds} s, PyVRP, pid {os.getpid()}", flush=True)
    instance = read_instance(Path(os.environ["INSTANCES_FOLDER"]), os.environ["INSTANCE"])
    cost, routes = solve(instance, seconds)
    result = {
        "jobId": job,
        "instance": instance.name,
        "engine": "v2",
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
