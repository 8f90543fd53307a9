import { CopyButton } from './copy-button.tsx';
import { Modal } from './modal.tsx';
import './secret-once.css';

/** Shows a new secret, which is never shown again. It exists only in this dialog: in no address, storage or log. */
export function SecretOnce(props: {
  readonly title: string;
  readonly secret: string;
  readonly snippet: string;
  /** What happens to the previous key, if there was one. */
  readonly note?: string;
  readonly onClose: () => void;
}) {
  const { secret, snippet, note } = props;
  return (
    <Modal title={props.title} onClose={props.onClose}>
      <p>
        Copy the key now. It is shown only once, because Headgate stores only its hash.
        {note !== undefined && ` ${note}`}
      </p>
      <div class="secret">
        <input
          aria-label="Secret"
          value={secret}
          readOnly
          autocomplete="off"
          spellcheck={false}
          onFocus={(event) => event.currentTarget.select()}
        />
        <CopyButton text={secret} label="Copy key" />
      </div>
      <h3>Try it</h3>
      <pre>{snippet}</pre>
      <CopyButton text={snippet} label="Copy command" />
      <form method="dialog" class="actions">
        <button type="submit" class="primary">
          Done
        </button>
      </form>
    </Modal>
  );
}
