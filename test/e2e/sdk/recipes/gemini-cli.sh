export GOOGLE_GEMINI_BASE_URL="https://headgate.example.workers.dev/gemini"
export GEMINI_API_KEY="your-provider-or-gateway-key"
gemini
