// The examples of docs/several-keys.md are complete configurations, and those with groups cause no warnings.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { checkConfig } from '../../../src/config/check-config.ts';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { parseConfigText } from '../../../src/config/parse-text.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';

const PAGE = readFileSync('docs/several-keys.md', 'utf8');

const EXAMPLES = [...PAGE.matchAll(/^```yaml\n([^`]*)```/gm)]
  .map(([, yaml = '']) => yaml)
  .filter((yaml) => yaml.includes('members:'))
  .map((yaml) => [/name: ([\w-]+)/.exec(yaml)?.[1], yaml] as const);

test('the page has three examples with members', () => {
  expect(EXAMPLES).toHaveLength(3);
});

test.each(EXAMPLES)('the example of group %s', (_name, yaml) => {
  const imported = importConfig(parseConfigText(yaml, 'application/yaml'));
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  const options = { privateUpstreams: false, jurisdiction: null };
  const { errors, warnings } = checkConfig(imported.config, BUILT_IN_UPSTREAMS, options);
  expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
  expect(imported.config.groups[0]?.members.length).toBeGreaterThan(1);
});
