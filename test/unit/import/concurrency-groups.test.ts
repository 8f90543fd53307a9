// Lists of groups whose members are models and providers, by the names that their system has for providers.
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../../src/config/check-config.ts';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';
import { upstreamsOf } from '../../../src/routing/group-match.ts';
import { resolveUpstreams } from '../../../src/routing/upstreams.ts';

const OWN = [
  { id: 'team-eu', base_url: 'https://team-eu.openai.azure.com', dialect: 'azure' as const },
  { id: 'custom', base_url: 'https://llm.example.com' },
];

function taken(entry: object) {
  const imported = importConfig({
    concurrency_groups: [{ name: 'g', max_concurrency: 2, ...entry }],
  });
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  return imported;
}

/** Lists the hosts whose calls the group of these providers has, beside upstreams of the operator. */
function hostsOf(...providers: string[]): string[] {
  const { config } = taken({ providers });
  const own = importConfig({ upstreams: OWN });
  if (!own.ok) throw new Error(JSON.stringify(own.errors));
  const whole = { ...config, upstreams: [...config.upstreams, ...own.config.upstreams] };
  const options = { privateUpstreams: true, jurisdiction: null };
  expect(checkConfig(whole, BUILT_IN_UPSTREAMS, options).errors).toEqual([]);
  const [group] = whole.groups;
  if (group === undefined) throw new Error('There is no group.');
  return upstreamsOf(group, resolveUpstreams(whole, BUILT_IN_UPSTREAMS)).map(
    ({ baseUrl }) => new URL(baseUrl).host,
  );
}

describe('providers, as their system names them', () => {
  it.each([
    ['anthropic', 'api.anthropic.com'],
    ['openai', 'api.openai.com'],
    ['openai-response', 'api.openai.com'],
    ['azure', 'team-eu.openai.azure.com'],
    ['deepseek', 'api.deepseek.com'],
    ['qwen', 'dashscope.aliyuncs.com'],
    ['minimax', 'api.minimaxi.com'],
    ['openrouter', 'openrouter.ai'],
    ['zhipu', 'open.bigmodel.cn'],
    ['baidu', 'qianfan.baidubce.com'],
    ['gemini', 'generativelanguage.googleapis.com'],
    ['kimi', 'api.moonshot.cn'],
    ['vllm', 'localhost:8000'],
    ['ollama', 'localhost:11434'],
    ['sglang', 'localhost:30000'],
    ['custom', 'llm.example.com'],
  ])('%s leads to %s', (provider, host) => {
    expect(hostsOf(provider)).toEqual([host]);
  });

  it.each([
    ['zai-coding-plan', 'zai-coding'],
    ['ZAI-Coding-Plan', 'zai-coding'],
    ['zhipuai-coding-plan', 'zhipu-coding'],
    ['zhipuai', 'zhipu'],
    ['kimi-for-coding', 'kimi-code'],
    ['minimax-coding-plan', 'minimax'],
    ['minimax-cn-coding-plan', 'minimax-cn'],
    ['alibaba-coding-plan', 'dashscope-coding'],
  ])('of coding plans are their built-in upstreams: %s', (provider, id) => {
    const { config, notes } = taken({ providers: [provider] });
    expect(config.groups[0]?.match.upstreams).toEqual([id]);
    expect(notes).toEqual([`Provider \`${provider}\` became upstream \`${id}\`.`]);
  });

  it('lead to all their hosts together, where one of them has a host for each account', () => {
    expect(hostsOf('azure', 'OpenAI', 'vllm').toSorted()).toEqual([
      'api.openai.com',
      'localhost:8000',
      'team-eu.openai.azure.com',
    ]);
  });

  it('are told of where they are not what their name says here', () => {
    const { notes } = taken({ providers: ['kimi', 'vllm', 'azure', 'openai'] });
    expect(notes).toEqual([
      'Provider `kimi` became upstream `moonshot-cn`.',
      'Provider `vllm` became upstream `vllm` at http://localhost:8000. Headgate must be able to reach this address.',
      expect.stringContaining(
        'Provider `azure` matches every upstream at https://*.openai.azure.com',
      ),
    ]);
    expect(taken({ providers: ['custom'] }).notes).toEqual([
      'Provider `custom` has no known host. It became upstream `custom`, which must exist.',
    ]);
  });

  it('without an address are refused beside one with many, at their place', () => {
    const document = {
      concurrency_groups: [{ name: 'g', max_concurrency: 1, providers: ['azure', 'custom'] }],
    };
    const imported = importConfig(document);
    expect(imported.ok ? [] : imported.errors.map(({ path }) => path)).toEqual([
      'concurrency_groups[0].providers[1]',
    ]);
  });

  it('that may not be called from here are refused at their place', () => {
    const { config, pathOf } = taken({ providers: ['openai', 'sglang'] });
    const options = { privateUpstreams: false, jurisdiction: null };
    const { errors } = checkConfig(config, BUILT_IN_UPSTREAMS, options);
    expect(errors.map(({ path }) => pathOf?.(path))).toEqual([
      'concurrency_groups[0].providers[1]',
    ]);
  });
});

describe('an entry with models and providers', () => {
  it('has each model wherever it runs, and all of each provider', () => {
    const { config, notes } = taken({ models: ['gpt-4o', 'o1-*'], providers: ['minimax', 'vllm'] });
    expect(config.groups[0]?.match).toMatchObject({
      models: ['gpt-4o', 'o1-*', 'minimax-cn/*', 'vllm/*'],
      upstreams: [],
    });
    expect(config.upstreams.map(({ id }) => id)).toEqual(['vllm']);
    expect(notes).toContain(
      '`g` counts its models at every upstream, and every model at `minimax-cn`, `vllm`. To count its models there only, write them as `minimax-cn/gpt-4o`.',
    );
  });
});
