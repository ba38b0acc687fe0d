"""``/admin``: the operators' API, authenticated by the header X-Admin-Token."""

from __future__ import annotations

from quart import Blueprint

from collidium.api.admin import actions, benchmarks, requests
from collidium.api.authentication import only_operators

blueprint = Blueprint("admin", __name__, url_prefix="/admin")
blueprint.before_request(only_operators)
for part in (actions, benchmarks, requests):
    blueprint.register_blueprint(part.blueprint)
