import { query } from '@anthropic-ai/claude-agent-sdk';

const headgate = 'https://headgate.example.workers.dev/anthropic';
const env = { ...process.env, ANTHROPIC_BASE_URL: headgate };
for await (const message of query({ prompt: process.argv[2], options: { env } })) {
  if (message.type === 'result') console.log(message.result);
}
