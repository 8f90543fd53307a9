import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../../../scripts/serve/build.ts';
import { buildWorker } from '../../support/build-worker.ts';

/** Makes a module for `LifecycleStageOptions` in a folder, and returns its path. */
type MakeWorker = (folder: string) => Promise<string>;

/**
 * Makes a Worker with other behavior.
 *
 * @param source file with the class to change, from `src`
 * @param name the class
 * @param change code that may use the class
 */
export function changedWorker(source: string, name: string, change: string): MakeWorker {
  return async (folder) => {
    const main = join(folder, 'changed', 'worker.js');
    const [index, changed] = ['index.ts', source].map((path) =>
      JSON.stringify(join(ROOT, 'src', path)),
    );
    await mkdir(join(folder, 'changed'), { recursive: true });
    await writeFile(
      main,
      `import { ${name} } from ${changed};
export * from ${index};
export { default } from ${index};
${change}`,
    );
    return buildWorker(main, join(folder, 'changed', 'built'));
  };
}

/**
 * A made-up lease. Revoking it ends the object's instance and drops its memory, as evictions and deploys do on the
 * platform. workerd alone never does that.
 */
export const RESET_LEASE = 'reset-by-the-test';

export const resettableWorker: MakeWorker = changedWorker(
  'group/group-object.ts',
  'GroupObject',
  `const { revoke } = GroupObject.prototype;
GroupObject.prototype.revoke = function (id) {
  if (id === '${RESET_LEASE}') this.ctx.abort('reset by the test');
  return revoke.call(this, id);
};
`,
);
