from anthropic import Anthropic
from google import genai
from openai import OpenAI

HEADGATE = "https://headgate.example.workers.dev"

openai = OpenAI(base_url=f"{HEADGATE}/openai/v1", timeout=300)
stream = openai.chat.completions.create(
    model="gpt-4o-mini",
    messages=[{"role": "user", "content": "How much water does the canal take?"}],
    stream=True,
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="")

anthropic = Anthropic(base_url=f"{HEADGATE}/anthropic", timeout=300)
gemini = genai.Client(http_options={"base_url": f"{HEADGATE}/gemini"})
