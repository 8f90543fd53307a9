// Imports: the examples of our pages, and what the documentation of each system shows first, in words of our own, are
// taken over.
import { describe, expect, it } from 'vitest';
import shapes from '../../../docs/configuration.md?raw';
import migrate from '../../../docs/migrate.md?raw';
import { DOCUMENT_SYSTEMS, fieldsOfSystem } from '../../../packages/import/src/formats.ts';
import { convertFlags } from '../../../scripts/cli/shaper/convert-flags.ts';
import { parseConfigText } from '../../../src/config/parse-text.ts';
import { admin, importForeign } from '../support/worker.ts';

/** Lists the fenced documents of a part of a page. */
function fenced(page: string, from: string, to: string): string[] {
  const part = page.slice(page.indexOf(`\n## ${from}`), page.indexOf(`\n## ${to}`));
  return [...part.matchAll(/```(?:yaml|json)\n([^`]*)```/g)].map(([, text = '']) => text);
}

const openai = (slug: string, more: object = {}) => ({ provider: slug, ...more });

const EXAMPLES: readonly (readonly [string, unknown])[] = [
  ...fenced(shapes, 'Import formats', 'How a change applies').map(
    (text, at) => [`configuration.md, ${at + 1}`, parseConfigText(text, null)] as const,
  ),
  ...fenced(migrate, 'LiteLLM', 'The concurrency shaper').map(
    (text, at) => [`migrate.md, ${at + 1}`, parseConfigText(text, null)] as const,
  ),
  ['Portkey: one provider', openai('@openai-main')],
  [
    'Portkey: two of one provider',
    {
      strategy: { mode: 'loadbalance' },
      targets: [openai('@openai-one', { weight: 2 }), openai('@openai-two')],
    },
  ],
  [
    'Hermes: the file that its installer copies',
    {
      _config_version: 50,
      runtime: { nofile_soft_limit: 4096 },
      model: {
        default: 'anthropic/claude-opus-4.6',
        provider: 'auto',
        base_url: 'https://openrouter.ai/api/v1',
      },
    },
  ],
  [
    'PicoClaw: basic configuration',
    {
      model_list: [
        {
          model_name: 'ark',
          provider: 'volcengine',
          model: 'ark-code-latest',
          api_keys: ['of-picoclaw-1'],
        },
        { model_name: 'gpt', provider: 'openai', model: 'gpt-5.4', api_keys: ['of-picoclaw-2'] },
        {
          model_name: 'claude',
          provider: 'anthropic',
          model: 'claude-sonnet-4.6',
          api_keys: ['of-picoclaw-3'],
        },
        { model_name: 'glm', provider: 'zhipu', model: 'glm-4.7', api_keys: ['of-picoclaw-4'] },
      ],
      agents: { defaults: { model_name: 'gpt' } },
    },
  ],
  ...[
    'ai-concurrency-shaper -upstream https://api.anthropic.com',
    'ai-concurrency-shaper -upstream https://api.anthropic.com -limit "POST /v1/messages@m:3" -limit "POST /v1/rank@m:3"',
  ].map((text) => {
    const converted = convertFlags(text);
    return [`shaper: ${text}`, converted.ok ? converted.config : converted.errors] as const;
  }),
];

describe('an example is taken over', () => {
  it.each(EXAMPLES)('%s', async (_title, document) => {
    const { status, json } = await importForeign(document);
    expect([status, json.errors]).toEqual([200, undefined]);
    const stored = await admin('GET', '/config');
    const { groups } = (stored.json.config ?? stored.json) as { groups: unknown[] };
    expect(groups.length).toBeGreaterThan(0);
    // Keys of the documents begin so.
    expect(JSON.stringify([json, stored.json])).not.toMatch(
      /of-picoclaw|sk-(?:first|second|third)/,
    );
  });
});

describe('the admin API says how to convert the configuration of another system', () => {
  const fields = DOCUMENT_SYSTEMS.flatMap(fieldsOfSystem).filter((name) => name !== 'list');

  it.each([...new Set(fields)])('%s', async (path) => {
    const [put, preview] = await Promise.all([
      admin('PUT', '/config', { [path]: [], general_settings: {} }),
      admin('POST', '/config/preview', { [path]: [], general_settings: {} }),
    ]);
    const message = expect.stringContaining('`headgate apply FILE`') as unknown;
    expect(put).toMatchObject({ status: 422, json: { errors: [{ path, message }] } });
    expect(preview).toMatchObject({ status: 422, json: { errors: [{ path, message }] } });
  });

  it('unless the document has fields of Headgate', async () => {
    const { status, json } = await admin('PUT', '/config', { groups: [], model_list: [] });
    const message = expect.stringMatching(/^unknown field `model_list`/) as unknown;
    expect([status, json.errors]).toEqual([422, [{ path: 'model_list', message }]]);
  });
});
