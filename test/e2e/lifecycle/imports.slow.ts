// Configurations of other systems: the command line converts each, and what comes of it is applied. It also applies them
// as they are. The examples of our own pages too.
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DOCUMENT_SYSTEMS, foreignShapesOf } from '../../../packages/import/src/formats.ts';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { parseConfigText } from '../../../src/config/parse-text.ts';
import { ROOT } from '../../../scripts/serve/build.ts';
import { runToEnd, type Ended } from '../support/command-line.ts';
import {
  practiceConfig,
  startStage,
  STAGE_TOKEN,
  type LifecycleStage,
} from '../support/lifecycle-stage.ts';

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startStage({ config: practiceConfig(2) });
});

afterAll(() => stage.close());

/** An example in `test/e2e/imports`, and what an import makes of it. */
interface Example {
  readonly system: string;
  readonly file: string;
  /** Groups that are made, with their members. */
  readonly groups: Readonly<Record<string, readonly string[]>>;
  /** Paths of the parts that are left out. */
  readonly omitted: readonly string[];
  /** True: only the command line reads it whole. */
  readonly isForCommand?: boolean;
}

const EXAMPLES: readonly Example[] = [
  {
    system: 'litellm',
    file: 'first-example.yaml',
    groups: {
      'chat-large': ['contoso-west-openai-azure-co', 'contoso-north-openai-azure-c'],
      'claude-in-region': ['bedrock-runtime-eu-central-1'],
      'house-model': ['127-0-0-1-4000'],
    },
    omitted: [
      'model_list[2].litellm_params.model',
      'model_list[5].litellm_params.model',
      'litellm_settings.drop_params',
      'litellm_settings.success_callback',
      'general_settings.master_key',
      'general_settings.alerting',
    ],
  },
  {
    system: 'litellm',
    file: 'balanced.yaml',
    groups: {
      small: ['127-0-0-1-8001', '127-0-0-1-8002', 'contoso-west-openai-azure-co', 'openai'],
      large: ['contoso-west-openai-azure-co', 'openai'],
      'all-models': [],
    },
    omitted: [],
  },
  {
    system: 'litellm',
    file: 'patterns.yaml',
    groups: { openai: ['openai'], engine: ['engine'], claude: ['anthropic'] },
    omitted: [],
    isForCommand: true,
  },
];

/** Configurations of other systems on our pages. */
const OF_PAGES = ['docs/configuration.md', 'docs/migrate.md'].flatMap((page) => {
  const text = pageText(page);
  return [...text.matchAll(/^```(yaml|json)\n(.*?)^```/gms)].flatMap(
    ([, format = '', block = ''], at) => {
      const document = parseConfigText(block, `application/${format}`);
      const system = DOCUMENT_SYSTEMS.find(
        (each) =>
          foreignShapesOf(document, { system: each }).length > 0 &&
          importConfig(document, { system: each }).ok,
      );
      return system === undefined ? [] : [{ name: `${page} ${at}`, format, system, block }];
    },
  );
});

function pageText(page: string): string {
  try {
    return readFileSync(page, 'utf8');
  } catch {
    return '';
  }
}

function headgate(...args: string[]): Promise<Ended> {
  return runToEnd([process.execPath, 'scripts/headgate.ts', ...args], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], HEADGATE_URL: stage.url(), HEADGATE_TOKEN: STAGE_TOKEN },
  });
}

interface Turned {
  readonly config: { readonly groups: { name: string; members?: { upstream: string }[] }[] };
  readonly omitted: { readonly path: string; readonly message: string }[];
}

/** Imports a file, and applies what comes of it. */
async function importAndApply(system: string, path: string): Promise<Turned & Ended> {
  const ours = join(stage.dataDir, 'ours.yaml');
  const ended = await headgate('import', system, path, '-o', ours, '--json');
  const turned = JSON.parse(ended.out) as Turned;
  expect(ended.code).toBe(turned.omitted.length > 0 ? 8 : 0);
  const applied = await headgate('apply', ours, '--yes');
  expect([applied.code, applied.code === 0 ? '' : applied.err]).toEqual([0, '']);
  return { ...ended, ...turned };
}

/** Sends a document as it is. */
async function put(text: string, format: string) {
  const answer = await fetch(`${stage.url()}/admin/api/config`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${STAGE_TOKEN}`, 'content-type': `application/${format}` },
    body: text,
  });
  const json = (await answer.json()) as { groups?: string[]; warnings?: string[]; detail?: string };
  return { status: answer.status, ...json };
}

describe('an example of another system', () => {
  it.each(EXAMPLES)('$system $file is imported and applied', async (example) => {
    const { system, file, groups, omitted } = example;
    const path = join('test/e2e/imports', system, file);
    const turned = await importAndApply(system, path);
    const made = turned.config.groups.map(({ name, members = [] }) => [
      name,
      members.map(({ upstream }) => upstream),
    ]);
    expect(Object.fromEntries(made)).toEqual(groups);
    expect(turned.omitted.map((each) => each.path).toSorted()).toEqual(omitted.toSorted());
    if (example.isForCommand === true) return;
    const applied = await headgate('apply', path, '--yes');
    expect(applied.code).toBe(0);
    for (const each of omitted) expect(applied.err).toContain(`Not imported: ${each}: `);
    const status = JSON.parse((await headgate('status', '--json')).out) as {
      readonly groups: readonly { readonly name: string }[];
    };
    expect(status.groups.map(({ name }) => name)).toEqual(
      expect.arrayContaining(Object.keys(groups)),
    );
    const answer = await put(readFileSync(path, 'utf8'), file.endsWith('json') ? 'json' : 'yaml');
    expect(answer.status).toBe(422);
  });

  it('is found on our pages', () => {
    expect(OF_PAGES.length).toBeGreaterThan(3);
  });

  it.each(OF_PAGES)('of $name is imported and applied', async ({ system, block, format }) => {
    const path = join(stage.dataDir, `example.${format}`);
    await writeFile(path, block);
    await importAndApply(system, path);
    expect((await headgate('apply', path, '--yes')).code).toBe(0);
  });
});

describe('a duplicate key', () => {
  const text = '{"groups":[{"name":"a","limits":{"rpm":1,"rpm":2}}]}';
  const message =
    'line 1, column 42: duplicate key. Remove one of the two values of groups[0].limits.rpm.';

  it('is refused with its place by the admin API, also in the body of a group', async () => {
    expect(await put(text, 'json')).toMatchObject({
      status: 400,
      detail: expect.stringContaining(message),
    });
    const answer = await fetch(`${stage.url()}/admin/api/groups/a`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${STAGE_TOKEN}`, 'content-type': 'application/json' },
      body: '{"paused":false,"paused":true}',
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain('duplicate key');
  });

  it('is refused with its place by the command line', async () => {
    const path = join(stage.dataDir, 'twice.json');
    await writeFile(path, text);
    const { code, err } = await headgate('apply', path, '--yes');
    expect([code, err]).toEqual([7, expect.stringContaining(message)]);
  });
});
