import { dirname, resolve } from 'node:path';
import { EXIT, CommandFailure } from './failure.ts';

/** Maximum files that one document includes, directly and through its includes. */
const FILES_MAX = 100;

/**
 * Merges included files into a LiteLLM configuration, as LiteLLM does: lists are appended, and all other values replace
 * those of the including file. File names are relative to the including file. For `-`, they are relative to the current
 * folder.
 */
export async function withIncludes(
  document: unknown,
  file: string,
  read: (file: string) => Promise<unknown>,
): Promise<unknown> {
  let files = 0;
  const include = async (whole: unknown, folder: string): Promise<unknown> => {
    if (typeof whole !== 'object' || whole === null || !('include' in whole)) return whole;
    const { include: named, ...rest } = whole;
    const merged: Record<string, unknown> = { ...rest };
    const names = Array.isArray(named) ? (named as unknown[]) : [named];
    for (const name of names) {
      files += 1;
      if (typeof name !== 'string' || files > FILES_MAX) {
        const why =
          files > FILES_MAX ? `more than ${FILES_MAX} files` : 'a value that is not a file name';
        throw new CommandFailure(EXIT.invalid, `\`include\` lists ${why}.`);
      }
      const path = resolve(folder, name);
      const part = await include(await read(path), dirname(path));
      for (const [key, value] of Object.entries(Object(part) as Record<string, unknown>)) {
        const own = merged[key];
        merged[key] = Array.isArray(value) && Array.isArray(own) ? [...own, ...value] : value;
      }
    }
    return merged;
  };
  return include(document, file === '-' ? '.' : dirname(file));
}
