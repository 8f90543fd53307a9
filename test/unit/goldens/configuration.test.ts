// Freezes the JSON schema of the configuration: `input` is what operators may send, `output` has all defaults filled
// in.
import { expect, it } from 'vitest';
import * as z from 'zod';
import { configSchema } from '../../../src/contract/config/config.ts';
import { goldenFile, goldenText, undescribedFields, withoutProse } from '../../support/golden.ts';

it.each(['input', 'output'] as const)('freezes the %s schema of the configuration', async (io) => {
  const schema = z.toJSONSchema(configSchema, { io });
  expect(undescribedFields(schema)).toEqual([]);
  await expect(goldenText(withoutProse(schema))).toMatchFileSnapshot(
    goldenFile(`configuration-${io}`),
  );
});
