import { afterAll, afterEach } from 'vitest';

/**
 * Invariants that any pool of a test has broken. Every test fails by one, whatever it proves itself; a test that
 * breaks one on purpose takes it.
 */

const found: string[] = [];

/** Notes what tells of a broken invariant. */
export function noteViolation(reported: string): void {
  found.push(reported);
}

/** Notes the line of a log, or more of it, if it tells of a broken invariant. */
export function noteOutput(text: string): void {
  for (const line of text.split('\n')) {
    if (line.includes('"invariant_violated"')) noteViolation(line);
  }
}

/** Takes what was found since. */
export function takeViolations(): string[] {
  return found.splice(0);
}

/** Makes every test of a file fail in which an invariant was broken. */
export function failByViolations(): void {
  const check = (): void => {
    const broken = takeViolations();
    if (broken.length > 0) throw new Error(`Invariants were broken:\n${broken.join('\n')}`);
  };
  afterEach(check);
  afterAll(check);
}
