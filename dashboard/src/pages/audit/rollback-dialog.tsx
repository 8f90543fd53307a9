import { exact } from '../../format.ts';
import { withInstants } from '../../model/audit.ts';
import { byObject, tally } from '../../model/change-list.ts';
import { shortText } from '../../model/short-text.ts';
import { ChangedObjects, Warnings } from '../../ui/changed-objects.tsx';
import { EffectNow } from '../../ui/effect-now.tsx';
import { Modal } from '../../ui/modal.tsx';
import type { RollbackPreview, useRollback } from './use-rollback.ts';

/** Review of a way back: what it changes, what stays, and what was changed since. */
export function RollbackDialog({
  rollback,
}: {
  readonly rollback: ReturnType<typeof useRollback>;
}) {
  const { looked, isBusy } = rollback;
  if (looked === null) return null;
  const { way, preview, problem, isAgain } = looked;
  const isUndo = way.undo !== undefined;
  const title = isUndo ? `Undo version ${way.undo}` : `Restore version ${way.version}`;
  const objects = byObject(preview?.changes ?? []);
  return (
    <Modal title={title} onClose={rollback.close} isWide>
      {problem !== null && <p role="alert">{problem}</p>}
      {preview !== null && (
        <>
          {isAgain && (
            <p role="alert">
              The configuration was changed elsewhere meanwhile. Look at this once more.
            </p>
          )}
          <Conflicts
            conflicts={preview.conflicts}
            isAll={way.conflicts === 'overwrite'}
            onAll={(isAll) => rollback.look({ ...way, conflicts: isAll ? 'overwrite' : 'keep' })}
          />
          <Warnings warnings={preview.warnings.map((warning) => withInstants(warning, exact))} />
          {preview.effects.map((effect) => (
            <EffectNow
              key={effect.group}
              change={effect}
              title={`What this does now in ${effect.group}`}
            />
          ))}
          <h3>{objects.length === 0 ? 'Nothing would change' : `Changes: ${tally(objects)}`}</h3>
          <ChangedObjects objects={objects} omitted={preview.changes_omitted} />
        </>
      )}
      <div class="actions">
        <button type="button" onClick={rollback.close}>
          Cancel
        </button>
        {preview !== null && (
          <button
            type="button"
            class="primary"
            disabled={isBusy || objects.length === 0}
            onClick={rollback.apply}
          >
            {isUndo ? 'Undo this change' : 'Restore this version'}
          </button>
        )}
      </div>
    </Modal>
  );
}

/** Fields of the change that were changed since, and what becomes of these. */
function Conflicts(props: {
  readonly conflicts: RollbackPreview['conflicts'];
  readonly isAll: boolean;
  readonly onAll: (isAll: boolean) => void;
}) {
  const { conflicts } = props;
  if (conflicts.length === 0) return null;
  return (
    <section class="conflicts" aria-label="Changed since">
      <h3>Changed again since</h3>
      <ul class="changes">
        {conflicts.map(({ path, was, now }) => (
          <li key={path}>
            <code>{path}</code>: is {shortText(now) ?? 'another value'} now, was{' '}
            {shortText(was) ?? 'another value'} before
          </li>
        ))}
      </ul>
      <label class="choice">
        <input
          type="checkbox"
          checked={props.isAll}
          onChange={(event) => props.onAll(event.currentTarget.checked)}
        />{' '}
        Take these back too
      </label>
    </section>
  );
}
