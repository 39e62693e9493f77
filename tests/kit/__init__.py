"""Tests of the testing kit, as its users would write them: boto3 outside in."""
