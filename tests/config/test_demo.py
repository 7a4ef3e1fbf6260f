from pathlib import Path

import yaml

from modelyard.config.demo import DEMO_KEYS
from modelyard.tenancy.keys import hash_key, key_id

CONFIG = Path(__file__).parents[2] / "configs" / "local.serve.yaml"


def test_the_shipped_config_holds_exactly_the_demonstration_keys() -> None:
    table = yaml.safe_load(CONFIG.read_text())["applications"][0]["deployments"][0]["user_config"]
    assert {key["id"]: key["sha256"] for key in table["keys"]} == {
        key_id(key): hash_key(key) for key in DEMO_KEYS
    }
