import { useState } from 'preact/hooks';
import type { TemporaryChoice } from '../../model/temporary.ts';
import { Modal } from '../../ui/modal.tsx';
import { UntilChoice } from '../../ui/until-choice.tsx';
import type { GroupPreview } from '../../model/effect.ts';
import { Effect } from './effect.tsx';

/** A checked change. It can be applied as long as the configuration does not change. */
export interface Reviewed {
  readonly preview: GroupPreview;
  readonly etag: string | null;
  /** Whether the configuration changed during the review. */
  readonly isAgain: boolean;
}

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
        <p role="alert">The configuration changed in the meantime. Review the change again.</p>
      )}
      <Effect preview={reviewed.preview} onFree={props.onFree} />
      {!isNew && <UntilChoice id="change-until" unending="permanently" onChange={setLasts} />}
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
