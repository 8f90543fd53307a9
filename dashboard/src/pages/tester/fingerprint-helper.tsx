import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { may } from '../../session.ts';

/** Creates the fingerprint of a key. The key is sent to Headgate once, and not stored. */
export function FingerprintHelper({ use }: { readonly use: (fingerprint: string) => void }) {
  const [key, setKey] = useState('');
  const [message, setMessage] = useState<string | null>(null);
  const isAllowed = may('operator');
  const make = async (): Promise<void> => {
    const result = await api('POST /fingerprint', { body: { key: key.trim() } });
    if (!result.ok) {
      setMessage(result.problem.detail);
      return;
    }
    setKey('');
    setMessage(
      `The fingerprint is ${result.body.fingerprint}. It was copied to the field Key above.`,
    );
    use(result.body.fingerprint);
  };
  return (
    <details class="fingerprint">
      <summary>Fingerprint a key</summary>
      <label for="fingerprint-key">Provider key</label>
      <div class="beside">
        <input
          id="fingerprint-key"
          type="password"
          autocomplete="off"
          value={key}
          disabled={!isAllowed}
          onInput={({ currentTarget }) => setKey(currentTarget.value)}
        />
        <button
          type="button"
          disabled={!isAllowed || key.trim() === ''}
          onClick={() => void make()}
        >
          Create fingerprint
        </button>
      </div>
      <p class="help" role="status">
        {message ??
          (isAllowed
            ? 'A fingerprint represents the key in groups and here, and does not reveal it.'
            : 'Requires the operator role.')}
      </p>
    </details>
  );
}
