// docs/members.md: its examples are whole configurations, and nothing in them is warned of.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { checkConfig } from '../../../src/config/check-config.ts';
import { importConfig } from '../../../src/config/import-config.ts';
import { parseConfigText } from '../../../src/config/parse-text.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';

const PAGE = readFileSync('docs/members.md', 'utf8');

const EXAMPLES = [...PAGE.matchAll(/^## (.*)\n[^#]*?```yaml\n([^`]*)```/gm)].map(
  ([, title = '', yaml = '']) => [title, yaml] as const,
);

test('has its three examples', () => {
  expect(EXAMPLES).toHaveLength(3);
});

test.each(EXAMPLES)('%s', (_title, yaml) => {
  const imported = importConfig(parseConfigText(yaml, 'application/yaml'));
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  const options = { privateUpstreams: false, jurisdiction: null };
  const { errors, warnings } = checkConfig(imported.config, BUILT_IN_UPSTREAMS, options);
  expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
  expect(imported.config.groups[0]?.members.length).toBeGreaterThan(1);
});
