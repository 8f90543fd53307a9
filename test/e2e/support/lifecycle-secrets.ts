import { createHash, randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A credential that must not show up anywhere, and what gives it away. */
export interface Secret {
  readonly name: string;
  readonly value: string;
  /** Either half of its random part is enough: a key that was cut short has leaked too. */
  readonly traces: readonly string[];
}

/** Makes a credential that nothing else in the world contains. */
export function makeSecret(name: string, prefix: string): Secret {
  const core = randomBytes(16).toString('hex');
  return { name, value: `${prefix}${core}`, traces: [core.slice(0, 16), core.slice(16)] };
}

/** SHA-256 of a gateway key, as the configuration holds it. */
export function keyHash(secret: Secret): string {
  return `sha256:${createHash('sha256').update(secret.value).digest('hex')}`;
}

/** Something that was said or kept, and where. */
export interface LifecycleSecretsFinding {
  readonly where: string;
  readonly data: Buffer;
}

/** Which secret was found where; empty is what one wants. */
export function leaks(
  secrets: readonly Secret[],
  findings: readonly LifecycleSecretsFinding[],
): string[] {
  return secrets.flatMap(({ name, traces }) =>
    findings
      .filter(({ data }) => traces.some((trace) => data.includes(trace)))
      .map(({ where }) => `${name} in ${where}`),
  );
}

/** Every file below a folder, as raw bytes: databases with their journals, whatever there is. */
export async function filesBelow(folder: string): Promise<LifecycleSecretsFinding[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(
    paths.map(async (path) => ({ where: path.slice(folder.length), data: await readFile(path) })),
  );
}
