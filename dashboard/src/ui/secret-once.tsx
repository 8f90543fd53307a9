import { CopyButton } from './copy-button.tsx';
import { Modal } from './modal.tsx';
import './secret-once.css';

/**
 * Shows a secret that nobody will ever see again. It lives in this dialog alone: in no address, no
 * storage and no log.
 */
export function SecretOnce(props: {
  readonly title: string;
  readonly secret: string;
  /** How to use it. */
  readonly snippet: string;
  /** Fate of the key before, where there was one. */
  readonly note?: string;
  readonly onClose: () => void;
}) {
  const { secret, snippet, note } = props;
  return (
    <Modal title={props.title} onClose={props.onClose}>
      <p>
        Copy it now: it is shown this once, and only its hash is kept.
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
          I have it
        </button>
      </form>
    </Modal>
  );
}
