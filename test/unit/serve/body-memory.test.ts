import { expect, it } from 'vitest';
import { BODY_MEMORY_MIB, readBodyMemory } from '../../../scripts/serve/body-memory.ts';

it.each(['48', '1024', String(BODY_MEMORY_MIB)])('takes %s MiB', (given) => {
  expect(readBodyMemory(given)).toBe(Number(given));
});

it.each(['', '0', '47', '-48', '64.5', '1GiB', 'Infinity'])('refuses "%s"', (given) => {
  const message = `--body-memory-mib ${given}: expected a whole number of MiB, at least 48.`;
  expect(() => readBodyMemory(given)).toThrow(message);
});
