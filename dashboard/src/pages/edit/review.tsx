import { useState } from 'preact/hooks';
import type { TemporaryChoice } from '../../model/temporary.ts';
import { Modal } from '../../ui/modal.tsx';
import { UntilChoice } from '../../ui/until-choice.tsx';
import type { GroupPreview } from '../../model/effect.ts';
import { Effect } from './effect.tsx';

/** A change that was checked, and can be applied as long as nobody else changes anything. */
export interface Reviewed {
  readonly preview: GroupPreview;
  readonly etag: string | null;
  /** Something else in the configuration changed while this was looked at. */
  readonly isAgain: boolean;
}

/** Shows what a change does before it is made. */
export function ReviewDialog(props: {
  readonly reviewed: Reviewed;
  readonly isNew: boolean;
  readonly isBusy: boolean;
  readonly onApply: (lasts: TemporaryChoice) => void;
  readonly onFree: () => void;
  readonly onClose: () => void;
}) {
  const { reviewed, isNew, isBusy } = props;
  const { name } = reviewed.preview.group;
  const [lasts, setLasts] = useState<TemporaryChoice | null>({});
  return (
    <Modal title={isNew ? `Create ${name}` : `Change ${name}`} onClose={props.onClose} isWide>
      {reviewed.isAgain && (
        <p role="alert">
          The configuration was changed elsewhere meanwhile. Look at this once more.
        </p>
      )}
      <Effect preview={reviewed.preview} onFree={props.onFree} />
      {!isNew && <UntilChoice id="change-until" unending="for good" onChange={setLasts} />}
      <div class="actions">
        <button type="button" onClick={props.onClose}>
          Back to editing
        </button>
        <button
          type="button"
          class="primary"
          disabled={isBusy || lasts === null}
          onClick={() => lasts !== null && props.onApply(lasts)}
        >
          {isNew ? 'Create group' : 'Apply change'}
        </button>
      </div>
    </Modal>
  );
}
