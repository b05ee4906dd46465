"""The shape that every problem document has."""

import httpx

from service.api.problems import MEDIA_TYPE, Problem


def check_shape(response: httpx.Response) -> Problem:
    """The one shape: the media type, the members, the status and the request id twice."""
    assert response.headers["content-type"] == MEDIA_TYPE
    problem = Problem.model_validate_json(response.content)
    assert problem.type.startswith("urn:sparing:problem:")
    assert problem.status == response.status_code
    assert problem.request_id == response.headers["x-request-id"]
    assert (problem.errors is not None) == (problem.status == 422)
    assert problem.title
    assert problem.detail
    assert all(each.field and each.message for each in problem.errors or [])
    return problem
