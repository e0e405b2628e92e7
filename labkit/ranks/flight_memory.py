"""The shared memory of the flight recorder: one rank writes it, the parent reads it at any moment.

It is made of 8-byte words, `FLIGHT_BYTES` in all: a header and two tables.

    header   operations so far, those before this call, streams in use, "the table is full", the
             number of the call
    records  a ring of the last `NUM_RECORDS` operations, for telling what happened
    streams  what must match between ranks, from the first operation of the call to the last

A stream is the collectives of one group, or the messages to (or from) one rank within a group. It
holds their number and a checksum over all of them, so that ranks can be compared exactly after any
number of operations.
"""

NUM_RECORDS = 32
RECORD_BYTES = 512
NUM_STREAMS = 1024
STREAM_BYTES = 128
HEADER_WORDS = 8
RECORD_WORDS = RECORD_BYTES // 8
STREAM_WORDS = STREAM_BYTES // 8
FIRST_STREAM = HEADER_WORDS + NUM_RECORDS * RECORD_WORDS
# The last stream is where those that find the table full write: nobody reads it.
FLIGHT_BYTES = 8 * (FIRST_STREAM + (NUM_STREAMS + 1) * STREAM_WORDS)

COUNT, BEFORE, STREAMS, FULL, CALL = range(5)  # words of the header
# Words of a record. VERSION is odd while the record is written.
VERSION, STATE, LENGTH, GROUP, SEQ, OUTGOING, INCOMING, STARTED, BODY = range(9)
# Words of a stream.
KEY, WAY, NUMBER, DIGEST, BALANCE, MEMBERS_LOW, MEMBERS_HIGH, NAME_LENGTH, NAME = range(9)

IN, DONE = 1, 2
TOGETHER, TO, FROM = 0, 1, 2  # ways of a stream: a collective; messages to, messages from a rank
MAX_BODY = RECORD_BYTES - 8 * BODY
MAX_NAME = STREAM_BYTES - 8 * NAME
MAX_MEMBERS = 128  # ranks from here on are not noted as members
