export ANTHROPIC_BASE_URL="https://headgate.example.workers.dev/anthropic"
export ANTHROPIC_API_KEY="sk-ant-your-provider-key"
claude
