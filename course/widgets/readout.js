const NO_SPEECH =
  "This browser cannot read aloud (it has no Web Speech API). The text above says the same.";
const NO_VOICE =
  "This browser has no voice installed, so it cannot read aloud. The text above says the same.";
const VOICE_PATIENCE_MS = 2000;

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

  let isReading = false;
  const show = (reading) => {
    isReading = reading;
    button.textContent = reading ? "Stop" : "Read aloud";
  };
  const stop = () => {
    if (isReading) speech.cancel();
    show(false);
  };
  // One utterance a line: some browsers cut a long one short.
  const read = () => {
    speech.cancel();
    show(true);
    const utterances = model.get("lines").map((line) => new SpeechSynthesisUtterance(line));
    for (const utterance of utterances) {
      utterance.lang = "en";
      utterance.onerror = stop;
      speech.speak(utterance);
    }
    utterances.at(-1).onend = () => show(false);
  };
  button.addEventListener("click", () => (isReading ? stop() : read()));

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
    stop();
  };
}

export default { render };
