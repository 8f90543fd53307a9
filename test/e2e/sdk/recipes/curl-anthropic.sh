export HEADGATE="https://headgate.example.workers.dev" ANTHROPIC_API_KEY="your-provider-or-gateway-key"
curl --no-buffer --fail-with-body --max-time 300 "$HEADGATE/anthropic/v1/messages" \
  -H "x-api-key: $ANTHROPIC_API_KEY" -H "anthropic-version: 2023-06-01" --json '{
    "model": "claude-haiku-4-5", "max_tokens": 1024, "stream": true,
    "messages": [{ "role": "user", "content": "How much water does the canal take?" }]
  }'
