export ANTHROPIC_BASE_URL="https://headgate.example.workers.dev/anthropic"
export ANTHROPIC_AUTH_TOKEN="hg_your-gateway-key"
claude
