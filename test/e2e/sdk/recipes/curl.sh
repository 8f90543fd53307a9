export HEADGATE="https://headgate.example.workers.dev" OPENAI_API_KEY="your-provider-or-gateway-key"
curl --no-buffer --fail-with-body --max-time 300 "$HEADGATE/openai/v1/chat/completions" \
  -H "authorization: Bearer $OPENAI_API_KEY" -H "headgate-max-wait: 60s" --json '{
    "model": "gpt-4o-mini", "stream": true,
    "messages": [{ "role": "user", "content": "How much water does the canal take?" }]
  }'
