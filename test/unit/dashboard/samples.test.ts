import { expect, it } from 'vitest';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { parseConfigText } from '../../../src/config/parse-text.ts';
import { SAMPLES } from '../../../dashboard/src/model/samples.ts';

it.each(SAMPLES)('an example can be imported: $name', ({ text }) => {
  const imported = importConfig(parseConfigText(text, null));
  expect(imported).toMatchObject({ ok: true });
  expect(imported.ok && imported.config.groups.length).toBe(2);
});
