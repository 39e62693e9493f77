"""The job: scores the tenants of the day that it is told, and puts the results on a queue. It asks no clock."""

import json
import os
from collections.abc import Mapping

import boto3

TENANTS = {"acme": "2026-10-10", "globex": "2026-10-10", "initech": "2026-10-11"}
"""Each tenant and the day for which it wants its scores (a table in real life)."""


def main(environment: Mapping[str, str]) -> int:
    """Score the tenants of the scheduled date; without one all of them, and the results bear no date."""
    date = environment["SCHEDULED_DATE"] or None
    sqs = boto3.client("sqs")
    url = sqs.get_queue_url(QueueName="results")["QueueUrl"]
    for tenant in sorted(name for name, day in TENANTS.items() if date in {day, None}):
        result = {"tenant": tenant, "date": date, "score": len(tenant)}
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(os.environ))
