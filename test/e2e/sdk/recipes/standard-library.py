import json
import urllib.request


def ask(headgate_url, api_key, question):
    body = {
        "model": "gpt-4o-mini",
        "stream": True,
        "messages": [{"role": "user", "content": question}],
    }
    headers = {
        "authorization": f"Bearer {api_key}",
        "content-type": "application/json",
        "headgate-max-wait": "60s",
    }
    url = f"{headgate_url}/openai/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    # Longer than headgate-max-wait, so that Headgate answers before the client gives up.
    with urllib.request.urlopen(request, timeout=120) as response:
        for line in response:
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    yield choice["delta"].get("content") or ""
