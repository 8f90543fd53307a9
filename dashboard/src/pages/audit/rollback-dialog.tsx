import { exact } from '../../format.ts';
import { withInstants } from '../../model/audit.ts';
import { byObject, tally } from '../../model/change-list.ts';
import { shortText } from '../../model/short-text.ts';
import { ChangedObjects, Warnings } from '../../ui/changed-objects.tsx';
import { EffectNow } from '../../ui/effect-now.tsx';
import { Modal } from '../../ui/modal.tsx';
import type { RollbackPreview, useRollback } from './use-rollback.ts';

/** Review of a rollback: its changes, and fields that were changed since. */
export function RollbackDialog({
  rollback,
}: {
  readonly rollback: ReturnType<typeof useRollback>;
}) {
  const { looked, isBusy } = rollback;
  if (looked === null) return null;
  const { target, preview, problem, isAgain } = looked;
  const isUndo = target.undo !== undefined;
  const title = isUndo ? `Undo version ${target.undo}` : `Restore version ${target.version}`;
  const objects = byObject(preview?.changes ?? []);
  return (
    <Modal title={title} onClose={rollback.close} isWide>
      {problem !== null && <p role="alert">{problem}</p>}
      {preview !== null && (
        <>
          {isAgain && (
            <p role="alert">The configuration changed in the meantime. Review the changes again.</p>
          )}
          <Conflicts
            conflicts={preview.conflicts}
            isAll={target.conflicts === 'overwrite'}
            onAll={(isAll) => rollback.look({ ...target, conflicts: isAll ? 'overwrite' : 'keep' })}
          />
          <Warnings warnings={preview.warnings.map((warning) => withInstants(warning, exact))} />
          {preview.effects.map((effect) => (
            <EffectNow
              key={effect.group}
              change={effect}
              title={`What this does now in ${effect.group}`}
            />
          ))}
          <h3>{objects.length === 0 ? 'No changes' : `Changes: ${tally(objects)}`}</h3>
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

/** Fields that were changed again since, and whether to revert these too. */
function Conflicts(props: {
  readonly conflicts: RollbackPreview['conflicts'];
  readonly isAll: boolean;
  readonly onAll: (isAll: boolean) => void;
}) {
  const { conflicts } = props;
  if (conflicts.length === 0) return null;
  return (
    <section class="conflicts" aria-label="Changed since">
      <h3>Changed again since then</h3>
      <ul class="changes">
        {conflicts.map(({ path, was, now }) => (
          <li key={path}>
            <code>{path}</code>: now {shortText(now) ?? 'another value'}, previously{' '}
            {shortText(was) ?? 'another value'}
          </li>
        ))}
      </ul>
      <label class="choice">
        <input
          type="checkbox"
          checked={props.isAll}
          onChange={(event) => props.onAll(event.currentTarget.checked)}
        />{' '}
        Revert these too
      </label>
    </section>
  );
}
