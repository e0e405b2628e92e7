const NO_SPEECH =
  "This browser cannot read aloud (it has no Web Speech API). The text above says the same.";
const NO_VOICE =
  "This browser has no voice installed, so it cannot read aloud. The text above says the same.";
const VOICE_PATIENCE_MS = 2000;
const STARTS = "labkit-readout-starts"; // heard by all readouts of the page: one voice for all
const CANCELLED = ["canceled", "interrupted"]; // errors of a line that somebody stopped

function render({ model, el }) {
  prepare(el, "labkit-readout");
  const button = element("button", { type: "button", textContent: "Read aloud" });
  const note = element("span", { className: "labkit-note", role: "status" });
  el.append(button, note);

  const speech = window.speechSynthesis;
  if (!speech || !window.SpeechSynthesisUtterance) {
    button.disabled = true;
    note.textContent = NO_SPEECH;
    return;
  }

  let batch = null; // the utterances that are being read for this button
  const show = (utterances) => {
    batch = utterances;
    button.textContent = batch ? "Stop" : "Read aloud";
  };
  const giveUp = () => show(null);
  const stop = () => {
    if (batch) speech.cancel();
    giveUp();
  };
  // One utterance a line: some browsers cut a long one short.
  const read = () => {
    window.dispatchEvent(new Event(STARTS));
    speech.cancel();
    const utterances = model.get("lines").map((line) => new SpeechSynthesisUtterance(line));
    const last = utterances.at(-1);
    const end = () => {
      if (batch === utterances) giveUp(); // what an earlier batch reports late changes nothing
    };
    show(utterances);
    for (const utterance of utterances) {
      utterance.lang = "en";
      utterance.onerror = ({ error }) => {
        if (utterance === last || CANCELLED.includes(error)) end();
      };
      speech.speak(utterance);
    }
    last.onend = end;
  };
  button.addEventListener("click", () => (batch ? stop() : read()));
  window.addEventListener(STARTS, giveUp);

  // Voices may arrive late, or never.
  const lookForVoices = () => {
    const hasVoice = speech.getVoices().length > 0;
    button.disabled = !hasVoice;
    note.textContent = hasVoice ? "" : NO_VOICE;
  };
  const patience = setTimeout(lookForVoices, VOICE_PATIENCE_MS);
  speech.addEventListener?.("voiceschanged", lookForVoices);
  return () => {
    clearTimeout(patience);
    speech.removeEventListener?.("voiceschanged", lookForVoices);
    window.removeEventListener(STARTS, giveUp);
    stop();
  };
}

export default { render };
