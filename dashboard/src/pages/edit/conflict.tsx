import { changesBetween } from '../../../../src/config/document-changes.ts';
import { Changes } from '../../ui/changes.tsx';
import { rebase, type EditedDocument } from '../../model/document.ts';
import { shortText } from '../../model/short-text.ts';

/** Conflict with a change of someone else: both changes, and the fields that both touch. */
export function Conflict(props: {
  readonly base: EditedDocument;
  readonly mine: EditedDocument;
  /** null if it was deleted. */
  readonly theirs: EditedDocument | null;
  /** Continues with my changes on top of theirs. */
  readonly onTakeOver: (merged: EditedDocument) => void;
  /** Continues with theirs, without my changes. */
  readonly onStartAnew: () => void;
}) {
  const { base, mine, theirs } = props;
  if (theirs === null) {
    return (
      <section class="conflict" aria-label="Conflict">
        <div role="alert">
          <h2>This was deleted while you edited it</h2>
        </div>
        <p>If you apply your version, it is created again.</p>
        <div class="actions">
          <button type="button" onClick={() => props.onTakeOver(mine)}>
            Continue and create it again
          </button>
          <a class="button" href="/admin">
            Leave it deleted
          </a>
        </div>
      </section>
    );
  }
  const { value, clashes } = rebase(base, mine, theirs);
  return (
    <section class="conflict" aria-label="Conflict">
      <div role="alert">
        <h2>This was changed while you edited it</h2>
      </div>
      <div class="sides">
        <div>
          <h3>They changed</h3>
          <Changes changes={changesBetween(base, theirs).changes} />
        </div>
        <div>
          <h3>You changed</h3>
          <Changes changes={changesBetween(base, mine).changes} />
        </div>
      </div>
      {clashes.length > 0 && (
        <p>
          Both changed{' '}
          {clashes.map(({ path, mine: own }, at) => (
            <span key={path}>
              {at > 0 && ', '}
              <code>{path}</code> (yours: {shortText(own) ?? 'another value'})
            </span>
          ))}
          . If you keep your changes, your values apply there.
        </p>
      )}
      <div class="actions">
        <button
          type="button"
          class="primary"
          onClick={() => props.onTakeOver(value as EditedDocument)}
        >
          Keep my changes
        </button>
        <button type="button" onClick={props.onStartAnew}>
          Discard my changes
        </button>
      </div>
    </section>
  );
}
