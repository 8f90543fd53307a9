export HEADGATE="https://headgate.example.workers.dev" GEMINI_API_KEY="your-provider-or-gateway-key"
curl --no-buffer --fail-with-body --max-time 300 \
  "$HEADGATE/gemini/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse" \
  -H "x-goog-api-key: $GEMINI_API_KEY" --json '{
    "contents": [{ "parts": [{ "text": "How much water does the canal take?" }] }]
  }'
