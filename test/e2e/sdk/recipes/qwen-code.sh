export OPENAI_BASE_URL="https://headgate.example.workers.dev/openai/v1"
export OPENAI_API_KEY="your-provider-or-gateway-key"
export OPENAI_MODEL="gpt-4o-mini"
qwen
