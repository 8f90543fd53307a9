// Set-up of tests that start Headgate as a process of its own: its log is looked through.
import { vi } from 'vitest';
import { failByViolations, noteOutput } from './violations.ts';

vi.mock(import('../../scripts/serve/log-lines.ts'), async (original) => {
  const real = await original();
  return {
    ...real,
    readLines: (stream, onLine) =>
      real.readLines(stream, (line) => {
        noteOutput(line);
        onLine(line);
      }),
  };
});

failByViolations();
