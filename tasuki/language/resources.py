"""A Task's Resource: its kinds, and the integrations that AWS knows by name (developer guide, "Integrated services")."""

import re

from tasuki.language.definition import Resource
from tasuki.values.arns import parse_arn

_PATTERNS = {"sync": "sync", "sync:2": "sync:2", "waitForTaskToken": "waitForTaskToken"}
_FUNCTION = re.compile(r"function:[\w.-]+(?::(?:\$LATEST|[\w.-]+))?")
_SDK = re.compile(r"[a-z0-9]+:[a-z][A-Za-z0-9]*")

_S, _T, _2 = "sync", "waitForTaskToken", "sync:2"
_INTEGRATIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "apigateway": {"invoke": (_T,)},
    "athena": {"startQueryExecution": (_S,), "stopQueryExecution": (), "getQueryExecution": (), "getQueryResults": ()},
    "batch": {"submitJob": (_S, _T)},
    "bedrock": {"invokeModel": (_T,), "createModelCustomizationJob": (_S, _T)},
    "codebuild": {
        "startBuild": (_S,),
        "stopBuild": (),
        "batchDeleteBuilds": (),
        "batchGetReports": (),
        "startBuildBatch": (_S,),
        "stopBuildBatch": (),
        "retryBuildBatch": (_S,),
        "deleteBuildBatch": (),
    },
    "databrew": {"startJobRun": (_S,)},
    "dynamodb": {"getItem": (), "putItem": (), "updateItem": (), "deleteItem": ()},
    "ecs": {"runTask": (_S, _T)},
    "eks": {
        "call": (),
        "runJob": (_S,),
        "createCluster": (_S,),
        "deleteCluster": (_S,),
        "createFargateProfile": (_S,),
        "deleteFargateProfile": (_S,),
        "createNodegroup": (_S,),
        "deleteNodegroup": (_S,),
    },
    "elasticmapreduce": {
        "createCluster": (_S,),
        "terminateCluster": (_S,),
        "addStep": (_S,),
        "cancelStep": (),
        "setClusterTerminationProtection": (),
        "modifyInstanceFleetByName": (),
        "modifyInstanceGroupByName": (),
    },
    "emr-containers": {"createVirtualCluster": (), "deleteVirtualCluster": (_S,), "startJobRun": (_S,)},
    "emr-serverless": {
        "createApplication": (_S,),
        "startApplication": (_S,),
        "stopApplication": (_S,),
        "deleteApplication": (_S,),
        "startJobRun": (_S,),
        "cancelJobRun": (_S,),
    },
    "events": {"putEvents": (_T,)},
    "glue": {"startJobRun": (_S,)},
    "http": {"invoke": ()},
    "lambda": {"invoke": (_T,)},
    "mediaconvert": {"createJob": (_S,)},
    "sagemaker": {
        "createEndpoint": (),
        "createEndpointConfig": (),
        "createHyperParameterTuningJob": (_S,),
        "createLabelingJob": (_S,),
        "createModel": (),
        "createProcessingJob": (_S,),
        "createTrainingJob": (_S,),
        "createTransformJob": (_S,),
        "updateEndpoint": (),
    },
    "sns": {"publish": (_T,)},
    "sqs": {"sendMessage": (_T,)},
    "states": {"startExecution": (_S, _2, _T)},
}


def parse_resource(text: str) -> Resource | None:
    """Take a Resource apart; None when it is not one that AWS recognises."""
    arn = parse_arn(text)
    if arn is None:
        return None
    if arn.service == "lambda" and _FUNCTION.fullmatch(arn.resource):
        return Resource(arn=text, kind="lambda", service="lambda", action=arn.resource.removeprefix("function:"))
    if arn.service != "states":
        return None
    name = arn.resource.removeprefix("activity:")
    if name != arn.resource:
        return Resource(arn=text, kind="activity", service="states", action=name) if name else None
    return _integration(text, arn.resource)


def _integration(arn: str, words: str) -> Resource | None:
    sdk = words.startswith("aws-sdk:")
    call, _, pattern = words.removeprefix("aws-sdk:").partition(".")
    service, _, action = call.partition(":")
    if sdk:
        fits = _SDK.fullmatch(call) is not None and pattern in {"", _T}
    else:
        patterns = _INTEGRATIONS.get(service, {}).get(action)
        fits = patterns is not None and (pattern in patterns or not (pattern or words.endswith(".")))
    if not fits:
        return None
    return Resource(
        arn=arn,
        kind="integration",
        service=service,
        action=action,
        pattern=_PATTERNS.get(pattern, ""),  # type: ignore[arg-type]
        sdk=sdk,
    )
