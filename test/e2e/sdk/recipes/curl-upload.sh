export HEADGATE="https://headgate.example.workers.dev" OPENAI_API_KEY="your-provider-or-gateway-key"
curl --fail-with-body "$HEADGATE/openai/v1/audio/transcriptions" \
  -H "authorization: Bearer $OPENAI_API_KEY" -F model=whisper-1 -F file=@speech.wav
