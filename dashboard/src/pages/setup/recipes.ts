import { curlFor, forAddress, pythonFor } from '../../model/snippets.ts';

/** The recipes of the documentation, which the tests run. */
const TESTED = import.meta.glob<string>(
  [
    '../../../../test/e2e/sdk/recipes/{ai-sdk,anthropic,langchain,openai,openai-any-provider}.ts',
    '../../../../test/e2e/sdk/recipes/{claude-code,claude-code-gateway-key}.sh',
    '../../../../test/e2e/sdk/recipes/codex.toml',
  ],
  { query: '?raw', import: 'default', eager: true },
);

export interface Recipe {
  readonly id: string;
  readonly name: string;
  readonly code: string;
  readonly note?: string;
}

const GATEWAY_NOTE = 'To use a gateway key, put it in place of the provider key.';

/** Client configurations for an address: the tested recipes, with the address put in. */
export function recipesFor(origin: string): readonly Recipe[] {
  const tested = (file: string) =>
    forAddress(TESTED[`../../../../test/e2e/sdk/recipes/${file}`] ?? '', origin);
  return [
    { id: 'openai', name: 'OpenAI, JS', code: tested('openai.ts'), note: GATEWAY_NOTE },
    { id: 'openai-python', name: 'OpenAI, Python', code: pythonFor(origin), note: GATEWAY_NOTE },
    { id: 'anthropic', name: 'Anthropic, JS', code: tested('anthropic.ts'), note: GATEWAY_NOTE },
    { id: 'claude-code', name: 'Claude Code', code: tested('claude-code.sh') },
    {
      id: 'claude-code-key',
      name: 'Claude Code, gateway key',
      code: tested('claude-code-gateway-key.sh'),
    },
    { id: 'codex', name: 'Codex', code: tested('codex.toml'), note: 'In ~/.codex/config.toml.' },
    { id: 'langchain', name: 'LangChain', code: tested('langchain.ts') },
    { id: 'ai-sdk', name: 'AI SDK', code: tested('ai-sdk.ts') },
    {
      id: 'any',
      name: 'Any provider',
      code: tested('openai-any-provider.ts'),
      note: 'One base URL for every provider with OpenAI-shaped routes. The model names the provider.',
    },
    { id: 'curl', name: 'curl', code: curlFor(origin), note: GATEWAY_NOTE },
  ];
}
